// How TLS agrees on keys with programs that are not trusted. One end offers ways and the other chooses, so the slow ones of OpenSSL are left out: a handshake
// with ffdhe8192 takes 100 ms of the event loop in one piece, and one with a finite field that the other end has made up takes 200 to 400 ms.

import { constants } from "node:crypto";
import { createSecureContext } from "node:tls";

const postQuantum = "X25519MLKEM768";

/** For a server: every client of TLS 1.3 has P-256. P-521 takes 4 ms and P-384 2 ms. */
export const servedExchanges = withPostQuantum("X25519:P-256");

/** For a client: options of node:tls. Some servers have only P-384 or P-521. Ciphers whose names begin with DHE use a finite field. */
export const clientExchanges = { ecdhCurve: withPostQuantum("X25519:P-256:P-384:P-521"), ciphers: `${constants.defaultCipherList}:!DHE` };

/** Adds the way that a quantum computer cannot break, where this OpenSSL has it. */
function withPostQuantum(classic: string): string {
  // No roots: reading them takes long, and nothing here checks a certificate.
  const ecdhCurve = `${postQuantum}:${classic}`;
  try {
    createSecureContext({ ca: [], ecdhCurve });
    return ecdhCurve;
  } catch {
    // OpenSSL before 3.5.
    return classic;
  }
}
