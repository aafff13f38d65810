// The bytes were made by the official Python classes of opentelemetry-proto.

import { expect, it } from "vitest";
import type { LogsRequest, TracesRequest } from "./otlp.ts";
import { LogsService, logsMessage, TraceService, tracesMessage } from "./otlp-messages.ts";

const resource = {
  attributes: [
    { key: "service.name", value: { stringValue: "my-worker" } },
    { key: "process.pid", value: { intValue: "42" } },
  ],
};
const scope = { name: "longshore", version: "0.1.0" };
const ids = { traceId: "a1b2c3d4e5f67890a1b2c3d4e5f67890", spanId: "fedcba0987654321" };

it("[S-OBS-01] spans are written as the official classes write them", () => {
  const request: TracesRequest = {
    resourceSpans: [
      {
        resource,
        scopeSpans: [
          {
            scope,
            spans: [
              {
                ...ids,
                parentSpanId: "1234567890abcdef",
                name: "component.execute",
                kind: 2,
                startTimeUnixNano: "1577836800000000000",
                endTimeUnixNano: "1577836800001500000",
                attributes: [
                  { key: "stepflow.component", value: { stringValue: "/greet" } },
                  { key: "ok", value: { boolValue: true } },
                  { key: "share", value: { doubleValue: 0.5 } },
                ],
                events: [
                  {
                    timeUnixNano: "1577836800001500000",
                    name: "exception",
                    attributes: [{ key: "exception.type", value: { stringValue: "RangeError" } }],
                  },
                ],
                status: { code: 2, message: "too far" },
                flags: 0x301,
              },
            ],
          },
        ],
      },
    ],
  };
  expect(Buffer.from(TraceService.Export.request.encode(tracesMessage(request))).toString("hex")).toBe(
    "0aa0020a300a1b0a0c736572766963652e6e616d65120b0a096d792d776f726b65720a110a0b70726f636573732e7069641202182a12eb010a120a096c6f6e6773686f72651205302e312e3012d4010a10a1b2c3d4e5f67890a1b2c3d4e5f678901208fedcba098765432122081234567890abcdef2a11636f6d706f6e656e742e6578656375746530023900008ab9359ae5154160e3a0b9359ae5154a1e0a1273746570666c6f772e636f6d706f6e656e7412080a062f67726565744a080a026f6b120210014a120a057368617265120921000000000000e03f5a340960e3a0b9359ae5151209657863657074696f6e1a1e0a0e657863657074696f6e2e74797065120c0a0a52616e67654572726f727a0b1207746f6f206661721802850101030000",
  );
});

it("[S-OBS-02] log records are written as the official classes write them", () => {
  const request: LogsRequest = {
    resourceLogs: [
      {
        resource,
        scopeLogs: [
          {
            scope,
            logRecords: [
              {
                timeUnixNano: "1577836800000000000",
                observedTimeUnixNano: "1577836800000000000",
                severityNumber: 13,
                severityText: "WARNING",
                body: { stringValue: "Processing records" },
                attributes: [{ key: "run_id", value: { stringValue: "run-12345" } }],
                ...ids,
                flags: 1,
              },
            ],
          },
        ],
      },
    ],
  };
  expect(Buffer.from(LogsService.Export.request.encode(logsMessage(request))).toString("hex")).toBe(
    "0ab6010a300a1b0a0c736572766963652e6e616d65120b0a096d792d776f726b65720a110a0b70726f636573732e7069641202182a1281010a120a096c6f6e6773686f72651205302e312e30126b0900008ab9359ae515100d1a075741524e494e472a140a1250726f63657373696e67207265636f72647332150a0672756e5f6964120b0a0972756e2d313233343545010000004a10a1b2c3d4e5f67890a1b2c3d4e5f678905208fedcba09876543215900008ab9359ae515",
  );
});
