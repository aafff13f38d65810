import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { protocolHints } from "../../../cli/protocols.ts";

describe("hints", () => {
  it("are the programs that the command line prints, for the address of the request or the given one", async () => {
    const { api, url } = await startAdminServer();
    const printed = async (address: string, asksToken = false) =>
      (await protocolHints({ url: address, asksToken, flags: {} })).flatMap(({ protocol, snippets }) =>
        snippets.map((each) => ({ protocol, ...each })),
      );
    expect((await api("GET", "/hints")).body).toEqual({ items: await printed(url), asksToken: false });
    const other = "https://longshore.example.org/flows";
    const { items } = (await api("GET", `/hints?url=${encodeURIComponent(other)}`)).body;
    expect(items).toEqual(await printed(other));
    expect(items.map(({ protocol }: { protocol: string }) => protocol)).toEqual(
      expect.arrayContaining(["longshore", "workflow-graph", "conductor", "stepflow", "flowkit"]),
    );
  });

  it("read the token from the environment where the server has tokens", async () => {
    const token = "0123456789abcdef";
    const { api } = await startAdminServer({ tokens: [token] });
    const { body } = await api("GET", "/hints", undefined, { authorization: `Bearer ${token}` });
    expect(body.asksToken).toBe(true);
    for (const { code } of body.items) expect(code).toContain("LONGSHORE_TOKEN");
    expect(JSON.stringify(body)).not.toContain(token);
  });

  it("refuse an address that a shell would not take as one word", async () => {
    const { api } = await startAdminServer();
    for (const url of ["http://h:1/'; rm -rf /", "ftp://h", "http://h:1/$(id)"]) {
      const { status, body } = await api("GET", `/hints?url=${encodeURIComponent(url)}`);
      expect({ url, status, field: body.error.field }).toEqual({ url, status: 400, field: "query.url" });
    }
  });
});
