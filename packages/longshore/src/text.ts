// Texts for people: cut to a limit without losing what matters, and counted things.

const cutMark = "\n... cut here ...\n";

/** At most `max` characters of `text`, keeping head and tail: the start says what failed, the end says why. */
export function cutMiddle(text: string, max: number): string {
  if (text.length <= max) return text;
  if (max <= cutMark.length) return wholeHead(text, max);
  const room = max - cutMark.length;
  const head = wholeHead(text, Math.ceil(room / 2));
  const tail = wholeTail(text, Math.floor(room / 2));
  return head + cutMark + tail;
}

/** The last `max` characters of `text`. */
export function cutTail(text: string, max: number): string {
  return text.length <= max ? text : wholeTail(text, max);
}

/** `1 step`, `2 steps`. */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

// A cut between the two halves of a surrogate pair would leave a text that some JSON readers refuse.
function wholeHead(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

function wholeTail(text: string, length: number): string {
  const start = text.length - length;
  const first = text.charCodeAt(start);
  return text.slice(first >= 0xdc00 && first <= 0xdfff ? start + 1 : start);
}
