// Keeps the process alive while something is under way that hangs on timers alone: those of the clock let it end.

/** Longest interval that Node's timers take. It never fires to any effect. */
const foreverMs = 2_147_483_647;

/** The returned function lets the process end, and may be called twice. */
export function keepProcessAlive(): () => void {
  const timer = setInterval(() => {}, foreverMs);
  return () => clearInterval(timer);
}
