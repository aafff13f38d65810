// Which reports are sent together. The test answers the requests itself.

import { expect, it } from "vitest";
import { deferred, until } from "../../../../test/support/until.ts";
import type { Reply } from "../../../net/http/send.ts";
import { type BatchedReport, ReportBatch } from "./report-batch.ts";

const { signal } = new AbortController();
const report = (leaseId: string, more: Partial<BatchedReport> = {}): BatchedReport => ({ leaseId, verb: "complete", body: "{}", ...more });
const whole = (status: number, text = ""): Reply => ({ status, headers: {}, text });

function setup(most = 50) {
  const sent: { leases: string[]; answer: (reply: Reply) => void }[] = [];
  let max = most;
  const sending = (leases: string[]) => {
    const { promise, resolve } = deferred<Reply>();
    sent.push({ leases, answer: resolve });
    return promise;
  };
  const batch = new ReportBatch({
    most: () => max,
    send: (text) => sending((JSON.parse(text) as { reports: { lease: string }[] }).reports.map(({ lease }) => lease)),
    sendAlone: ({ leaseId }) => sending([`alone ${leaseId}`]),
    refused: () => {
      max = 0;
    },
  });
  return { batch, sent };
}

it("sends a single report at once, and sends reports together that come while two requests are open", async () => {
  const { batch, sent } = setup();
  const statuses: number[] = [];
  const send = (leaseId: string) => void batch.send(report(leaseId), signal).then(({ status }) => statuses.push(status));
  send("a");
  await until(() => sent.length === 1);
  send("b");
  await until(() => sent.length === 2);
  for (const lease of ["c", "d", "e"]) send(lease);
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent.map(({ leases }) => leases)).toEqual([["alone a"], ["alone b"]]);
  sent[0]?.answer(whole(200));
  await until(() => sent.length === 3);
  expect(sent[2]?.leases).toEqual(["c", "d", "e"]);
  sent[2]?.answer(whole(200, '{"replies":[{"status":200},{"status":409},{"status":200,"body":null}]}'));
  await until(() => statuses.length === 4);
  expect(statuses).toEqual([200, 200, 409, 200]);
});

it("passes on the content of each reply: a job, a text, the span", async () => {
  const { batch, sent } = setup();
  const replies = Promise.all(["a", "b"].map((lease) => batch.send(report(lease), signal)));
  await until(() => sent.length === 1);
  sent[0]?.answer(whole(200, '{"replies":[{"status":200,"body":{"job":1},"traceparent":"t"},{"status":400,"text":"no"}]}'));
  expect(await replies).toEqual([
    { status: 200, headers: { traceparent: "t" }, text: '{"job":1}' },
    { status: 400, headers: {}, text: "no" },
  ]);
});

it("sends large reports alone, and no more in one request than the server accepts", async () => {
  const { batch, sent } = setup(2);
  for (const lease of ["a", "b", "c"]) void batch.send(report(lease), signal);
  void batch.send(report("large", { body: "x".repeat(20_000) }), signal);
  await until(() => sent.length === 3);
  expect(sent.map(({ leases }) => leases)).toEqual([["alone large"], ["a", "b"], ["alone c"]]);
});

it.each([
  [404, "does not know such requests", 4],
  [413, "finds the request too large", 3],
])("sends each report alone when the server answers with %i: it %s", async (status, _what, requests) => {
  const { batch, sent } = setup();
  const both = Promise.all(["a", "b"].map((lease) => batch.send(report(lease), signal)));
  await until(() => sent.length === 1);
  sent[0]?.answer(whole(status));
  await until(() => sent.length === 3);
  for (const { answer } of sent.slice(1)) answer(whole(200));
  await both;
  void batch.send(report("c"), signal);
  if (requests === 4) expect(sent[3]?.leases).toEqual(["alone c"]);
  else expect(sent).toHaveLength(3);
});

it("rejects all reports of a request that fails, and a report whose wait is ended", async () => {
  const { batch, sent } = setup();
  const stopping = new AbortController();
  const stopped = expect(batch.send(report("a"), stopping.signal)).rejects.toThrow("enough");
  const failed = expect(batch.send(report("b"), signal)).rejects.toMatchObject({ code: "LONGSHORE_UNREACHABLE" });
  await until(() => sent.length === 1);
  stopping.abort(new Error("enough"));
  await stopped;
  sent[0]?.answer(whole(503, "closing"));
  await failed;
});
