import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";

const content = "some bytes \u00e9\n";
const hash = createHash("sha256").update(content).digest("hex");
const json = { "content-type": "application/json" };
const octets = { "content-type": "application/octet-stream" };

describe("blobs", () => {
  it("are stored under the hash of their content, once", async () => {
    const { api } = await startAdminServer();
    const first = await api("POST", "/blobs", content, octets);
    expect([first.status, first.body]).toEqual([201, { hash, bytes: Buffer.byteLength(content) }]);
    expect((await api("POST", "/blobs", content, octets)).body).toEqual(first.body);
    const read = await api("GET", `/blobs/${hash}`);
    expect([read.status, read.body, read.headers["content-length"]]).toEqual([200, content, String(Buffer.byteLength(content))]);
  });

  it("whose content does not match the hash are refused, and nothing remains", async () => {
    const { api } = await startAdminServer();
    expect((await api("PUT", `/blobs/${hash}`, "other bytes", octets)).body.error.code).toBe("LONGSHORE_BAD_INPUT");
    expect((await api("GET", `/blobs/${hash}`)).status).toBe(404);
    expect((await api("PUT", "/blobs/not-a-hash", content, octets)).status).toBe(400);
    expect((await api("PUT", `/blobs/${hash}`, content, octets)).status).toBe(201);
  });

  it("that do not exist are 404", async () => {
    const { api } = await startAdminServer();
    const { status, body } = await api("GET", `/blobs/${"0".repeat(64)}`);
    expect([status, body.error.code]).toEqual([404, "LONGSHORE_NOT_FOUND"]);
  });

  it("are still there after a restart of the server", async () => {
    const before = await startAdminServer();
    await before.api("POST", "/blobs", content, octets);
    await before.close();
    const { api } = await startAdminServer({}, before);
    expect((await api("GET", `/blobs/${hash}`)).body).toBe(content);
  });

  it("can be read with a read token only under a run that refers to them", async () => {
    const [reader, operator] = ["reader-secret-0123456789", "operator-secret-0123456789"];
    const { api } = await startAdminServer({ tokens: [`read:${reader}`, `operator:${operator}`] });
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    await api("POST", "/blobs", content, { ...octets, ...as(operator) });
    const source = { name: "w", steps: [{ id: "a", task: "t", input: null }], output: null };
    await api("POST", "/definitions", { source }, { ...json, ...as(operator) });
    const start = async (input: unknown) => (await api("POST", "/runs", { workflow: "w", input }, as(operator))).body.id as string;
    const [id, other] = [await start({ file: hash }), await start(null)];
    expect((await api("GET", `/blobs/${hash}`, undefined, as(reader))).status).toBe(403);
    expect((await api("GET", `/runs/${id}/blobs/${hash}`, undefined, as(reader))).body).toBe(content);
    expect((await api("GET", `/runs/${other}/blobs/${hash}`, undefined, as(reader))).status).toBe(404);
    expect((await api("GET", `/runs/${id}/blobs/file`, undefined, as(reader))).status).toBe(404);
  });
});
