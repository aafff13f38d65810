// A wake-up signal for one waiter. No wake-up is lost: when the latch is opened while nothing waits, the next wait returns at once.

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
