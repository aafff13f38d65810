// Compares two recorded responses, value by value. Ids differ. So the first time that one of their ids occurs, it is paired with our id in
// the same place. From then on, the two ids must always occur together.

export type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain };

export interface Recorded {
  step: string;
  request: { method: string; path: string; contentType?: string; body?: Plain };
  answer: { status: number; contentType?: string; body: Plain };
}

export interface Difference {
  /** `status`, `contentType`, or a dotted path into the body. `*` means all items of a list. */
  at: string;
  reference: Plain | undefined;
  ours: Plain | undefined;
}

const ID = /00000000-0000-4000-8000-\d{12}/g;

/** Compares the responses of one chapter, in order. The pairs of ids apply to the whole chapter. */
export function createComparison(): (reference: Recorded, ours: Recorded) => Difference[] {
  const paired = new Map<string, string>();
  const taken = new Map<string, string>();

  const samePair = (left: string, right: string): boolean => {
    if (!paired.has(left) && !taken.has(right)) {
      paired.set(left, right);
      taken.set(right, left);
    }
    return paired.get(left) === right;
  };

  const sameText = (left: string, right: string): boolean => {
    if (left.replace(ID, "<id>") !== right.replace(ID, "<id>")) return false;
    const rightIds = right.match(ID) ?? [];
    return (left.match(ID) ?? []).every((id, index) => samePair(id, rightIds[index] ?? ""));
  };

  const same = (left: Plain | undefined, right: Plain | undefined): boolean =>
    typeof left === "string" && typeof right === "string" ? sameText(left, right) : left === right;

  return (reference, ours) => {
    const differences: Difference[] = [];
    const compare = (at: string, left: Plain | undefined, right: Plain | undefined): void => {
      if (isObject(left) && isObject(right)) {
        for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) compare(`${at}.${key}`, left[key], right[key]);
      } else if (Array.isArray(left) && Array.isArray(right) && left.length === right.length) {
        for (const [index, value] of left.entries()) compare(`${at}.${index}`, value, right[index]);
      } else if (!same(left, right)) {
        differences.push({ at, reference: left, ours: right });
      }
    };
    compare("status", reference.answer.status, ours.answer.status);
    compare("contentType", reference.answer.contentType, ours.answer.contentType);
    compare("body", reference.answer.body, ours.answer.body);
    return differences;
  };
}

export function isObject(value: Plain | undefined): value is { [key: string]: Plain } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
