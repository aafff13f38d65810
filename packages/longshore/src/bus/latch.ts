// A wake-up signal for one waiter: when it is opened while nothing waits, the next wait returns at once, so that no wake-up is lost.

export class Latch {
  #opened = false;
  #pass: (() => void) | null = null;

  open(): void {
    this.#opened = true;
    this.#pass?.();
  }

  async wait(): Promise<void> {
    if (!this.#opened) {
      await new Promise<void>((resolve) => {
        this.#pass = resolve;
      });
      this.#pass = null;
    }
    this.#opened = false;
  }
}
