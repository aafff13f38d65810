// Short messages about what was done, on the screen and for screen readers.

import { signal } from "@preact/signals";

const message = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  message.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => {
    message.value = "";
  }, 5_000);
}

export function ToastPlace() {
  return (
    <output class="toast" aria-live="polite" data-shown={message.value !== ""}>
      {message.value}
    </output>
  );
}
