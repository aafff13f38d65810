// The HTTP headers of Stepflow's transport. README.md, "Headers".

export const instanceHeader = "stepflow-instance-id";

/**
 * The hand-out of a task that a call belongs to: `<task>-<grant>`, percent-encoded. Our servers send it; other workers ignore it. With it,
 * `verify` can compare what our worker records with what the server stores.
 */
export const handOutHeader = "longshore-hand-out";

/** A longer value is not from our server. */
const handOutCharsMax = 1_024;

export function handOutIn(headers: { readonly [name: string]: string | readonly string[] | undefined }): string | undefined {
  const given = headers[handOutHeader];
  if (typeof given !== "string" || given.length > handOutCharsMax) return undefined;
  try {
    return decodeURIComponent(given);
  } catch {
    // Not percent-encoded, so it is not from our server.
    return undefined;
  }
}

/** The caller must accept both forms of a response: the worker knows which one it needs only when the component calls back or ends. */
export function acceptsBothForms(accept: string | undefined): boolean {
  const ranges = (accept ?? "").split(",").map(rangeOf);
  return ["application/json", "text/event-stream"].every((type) => ranges.some((range) => range.wanted && fits(range.type, type)));
}

export function isJson(contentType: string | undefined): boolean {
  const [type = "", ...parameters] = (contentType ?? "").split(";").map((field) => field.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith("charset="));
  return type === "application/json" && (charset === undefined || /^charset="?utf-?8"?$/.test(charset));
}

function rangeOf(text: string): { readonly type: string; readonly wanted: boolean } {
  const [type = "", ...parameters] = text.split(";").map((field) => field.trim().toLowerCase());
  // A weight of zero excludes the type.
  return { type, wanted: !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) };
}

function fits(range: string, type: string): boolean {
  return range === type || range === "*/*" || range === `${type.split("/")[0]}/*`;
}
