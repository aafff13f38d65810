// Times as people read them, in the zone of this machine.

const dayChars = 10;

/** `14:30` on the day of `now`, `2026-03-29 14:30` on another day. */
export function momentText(at: number, now: number): string {
  const [there, here] = [localText(at), localText(now)];
  return there.slice(0, dayChars) === here.slice(0, dayChars) ? there.slice(dayChars + 1) : there;
}

function localText(ms: number): string {
  const at = new Date(ms);
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}
