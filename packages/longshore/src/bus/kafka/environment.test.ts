import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/parts.ts";
import { kafkaSecurityIn } from "./environment.ts";

const ann = { KAFKA_SASL_USERNAME: "ann", KAFKA_SASL_PASSWORD: " open sesame " };

describe("the connection to Kafka from environment variables", () => {
  it("uses no TLS and no login by default, also when other variables are set", () => {
    expect(kafkaSecurityIn({ ...ann, KAFKA_SECURITY_PROTOCOL: " " })).toEqual({});
    expect(kafkaSecurityIn({ ...ann, KAFKA_SECURITY_PROTOCOL: "PLAINTEXT" })).toEqual({});
  });

  it("has the name and the password exactly as they were written", () => {
    const sasl = { mechanism: "PLAIN", username: "ann", password: " open sesame " };
    expect(kafkaSecurityIn({ ...ann, KAFKA_SECURITY_PROTOCOL: "sasl_plaintext" })).toEqual({ sasl });
    const scram = { ...ann, KAFKA_SECURITY_PROTOCOL: "SASL_SSL", KAFKA_SASL_MECHANISM: "scram-sha-512" };
    expect(kafkaSecurityIn(scram)).toEqual({ ssl: true, sasl: { ...sasl, mechanism: "SCRAM-SHA-512" } });
  });

  it("reads certificates from their files", () => {
    const files = { ca: "authority", cert: "ours", key: "secret" };
    const folder = temporaryFolder();
    const env = Object.fromEntries(
      Object.entries(files).map(([name, content]) => {
        writeFileSync(join(folder, name), content);
        return [`KAFKA_SSL_${name.toUpperCase()}_FILE`, join(folder, name)];
      }),
    );
    expect(kafkaSecurityIn({ ...env, KAFKA_SECURITY_PROTOCOL: "SSL" })).toEqual({ ssl: files });
  });

  it.each([
    [{ KAFKA_SECURITY_PROTOCOL: "TLS" }, 'KAFKA_SECURITY_PROTOCOL is "TLS", expected PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.'],
    [
      { ...ann, KAFKA_SECURITY_PROTOCOL: "SASL_SSL", KAFKA_SASL_MECHANISM: "GSSAPI" },
      'KAFKA_SASL_MECHANISM is "GSSAPI", expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.',
    ],
    [{ KAFKA_SECURITY_PROTOCOL: "SASL_SSL" }, "KAFKA_SASL_USERNAME is absent, expected the name of a Kafka user."],
    [
      { KAFKA_SECURITY_PROTOCOL: "SASL_SSL", KAFKA_SASL_USERNAME: "ann" },
      "KAFKA_SASL_PASSWORD is absent, expected the password of that user.",
    ],
    [{ KAFKA_SECURITY_PROTOCOL: "SSL", KAFKA_SSL_CA_FILE: "/no/such.pem" }, /^KAFKA_SSL_CA_FILE is \/no\/such\.pem, which cannot be read/],
  ])("reports what is wrong with %o", (env, message) => {
    expect(() => kafkaSecurityIn(env)).toThrow(
      expect.objectContaining({ code: "LONGSHORE_BAD_CONFIG", message: expect.stringMatching(message) }),
    );
  });
});
