// The headers that Stepflow's transport is particular about. README.md, "Headers".

export const instanceHeader = "stepflow-instance-id";

/**
 * The hand-out of a task that a call is for, as servers of ours name it: `<task>-<grant>`, percent-encoded. Workers of another make do not
 * read it. With it, what a worker of ours records can be compared with what its server has kept.
 */
export const handOutHeader = "longshore-hand-out";

/** Longer ones are not ours. */
const handOutCharsMax = 1_024;

export function handOutIn(headers: { readonly [name: string]: string | readonly string[] | undefined }): string | undefined {
  const given = headers[handOutHeader];
  if (typeof given !== "string" || given.length > handOutCharsMax) return undefined;
  try {
    return decodeURIComponent(given);
  } catch {
    // Not encoded as ours are.
    return undefined;
  }
}

/** Both forms of an answer must be welcome: which one it will be is known only when the component has called back or ended. */
export function acceptsBothForms(accept: string | undefined): boolean {
  const ranges = (accept ?? "").split(",").map(rangeOf);
  return ["application/json", "text/event-stream"].every((type) => ranges.some((range) => range.wanted && fits(range.type, type)));
}

export function isJson(contentType: string | undefined): boolean {
  const [type = "", ...parameters] = (contentType ?? "").split(";").map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith("charset="));
  return type === "application/json" && (charset === undefined || /^charset="?utf-?8"?$/.test(charset));
}

function rangeOf(text: string): { readonly type: string; readonly wanted: boolean } {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  // A weight of zero means: anything but this.
  return { type, wanted: !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) };
}

function fits(range: string, type: string): boolean {
  return range === type || range === "*/*" || range === `${type.split("/")[0]}/*`;
}
