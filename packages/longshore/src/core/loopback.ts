import { isIP } from "node:net";

/** True for addresses that only this machine can reach. The only accepted name is `localhost`. */
export function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, "");
  if (bare === "localhost" || bare === "::1") return true;
  const v4 = bare.startsWith("::ffff:") ? bare.slice(7) : bare;
  return isIP(v4) === 4 && v4.startsWith("127.");
}
