// Keeps the process alive while only timers of the clock are pending: those timers do not keep it alive themselves.

/** The longest interval that Node's timers accept. The timer has no effect besides keeping the process alive. */
const foreverMs = 2_147_483_647;

/** The returned function lets the process end; it may be called twice. */
export function keepProcessAlive(): () => void {
  const timer = setInterval(() => {}, foreverMs);
  return () => clearInterval(timer);
}
