// The address of a service as it may be shown: its user, password and parameters are often secrets.

/** Keeps the text before the login and the text after it, without the query. */
export function withoutLogin(address: string): string {
  const scheme = address.indexOf("://");
  const begin = scheme < 0 ? 0 : scheme + 3;
  const query = address.search(/[?#]/);
  const end = query < 0 ? address.length : query;
  const login = address.lastIndexOf("@", end);
  const rest = address.slice(login < begin ? begin : login + 1, end);
  return `${address.slice(0, begin)}${login < begin ? "" : "...@"}${rest}${query < 0 ? "" : "?..."}`;
}
