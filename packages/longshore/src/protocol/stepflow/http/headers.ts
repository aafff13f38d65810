// The headers that Stepflow's transport is particular about. README.md, "Headers".

export const instanceHeader = "stepflow-instance-id";

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
