import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  BadRequest,
  codeName,
  detailOf,
  ErrorInfo,
  errorOf,
  escapeMessage,
  findDetail,
  GrpcCode,
  GrpcError,
  trailersOf,
  unescapeMessage,
} from "./status.ts";

const missing = () => new GrpcError(GrpcCode.INTERNAL, "no status");

describe("the message of a status", () => {
  it("is escaped as in the examples of the protocol", () => {
    expect(escapeMessage("plain text, with commas")).toBe("plain text, with commas");
    expect(escapeMessage("100% größer\n")).toBe("100%25 gr%C3%B6%C3%9Fer%0A");
  });

  it("is the same after encoding and decoding, for any value", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(escapeMessage(text)).toMatch(/^[ -~]*$/);
        expect(unescapeMessage(escapeMessage(text))).toBe(text);
      }),
    );
  });

  it("is kept when an escape is invalid", () => {
    expect(unescapeMessage("50% of 3%2")).toBe("50% of 3%2");
    expect(unescapeMessage("a%ZZb%41")).toBe("a%ZZbA");
  });
});

describe("trailers", () => {
  it("carry code, message and details in both directions", () => {
    const info = { reason: "RESOURCE_NOT_FOUND", domain: "example.org", metadata: { resource_type: "queue", resource_id: "x" } };
    const details = [
      detailOf(BadRequest, { fieldViolations: [{ field: "worker_id", description: "is empty" }] }),
      detailOf(ErrorInfo, info),
    ];
    const read = errorOf(trailersOf(new GrpcError(GrpcCode.NOT_FOUND, "queue 'ü' not found", details)), missing) as GrpcError;
    expect(read).toMatchObject({ code: 5, message: "queue 'ü' not found" });
    expect(findDetail(read, ErrorInfo)).toEqual(info);
    expect(findDetail(read, BadRequest)).toEqual({ fieldViolations: [{ field: "worker_id", description: "is empty" }] });
  });

  it("report success, and an unknown code as UNKNOWN", () => {
    expect(errorOf({ "grpc-status": "0" }, missing)).toBeUndefined();
    expect(errorOf({ "grpc-status": "99", "grpc-message": "odd" }, missing)).toMatchObject({ code: 2, message: "odd" });
    expect(errorOf({ "grpc-status": "5" }, missing)).toMatchObject({ code: 5, message: "", details: [] });
    expect(errorOf({}, missing)).toMatchObject({ code: 13 });
  });

  it("are read when the details of the error are invalid", () => {
    const broken = errorOf({ "grpc-status": "5", "grpc-status-details-bin": "////" }, missing) as GrpcError;
    expect(broken).toMatchObject({ code: 5, details: [] });
    const odd = new GrpcError(GrpcCode.NOT_FOUND, "", [
      { typeUrl: "type.googleapis.com/google.rpc.ErrorInfo", value: new Uint8Array([255]) },
    ]);
    expect(findDetail(odd, ErrorInfo)).toBeUndefined();
    expect(findDetail(odd, BadRequest)).toBeUndefined();
  });

  it("stay within what peers accept as headers", () => {
    const sizeOf = (trailers: Record<string, string>) => Object.entries(trailers).join("").length;
    const small = [detailOf(ErrorInfo, { reason: "x".repeat(1_000) })];
    for (const text of ["ü".repeat(10_000), "x".repeat(10_000), "%".repeat(3_000), "🚢".repeat(2_000)]) {
      const trailers = trailersOf(new GrpcError(GrpcCode.INTERNAL, text, small));
      expect(sizeOf(trailers)).toBeLessThan(8_000);
      expect(unescapeMessage(trailers["grpc-message"] as string).slice(0, 100)).toBe(text.slice(0, 100));
    }
    expect(trailersOf(new GrpcError(GrpcCode.INTERNAL, "short", [detailOf(ErrorInfo, { reason: "x".repeat(5_000) })]))).toEqual({
      "grpc-status": "13",
      "grpc-message": "short",
    });
  });
});

it("a code has a name", () => {
  expect([codeName(0), codeName(16), codeName(99)]).toEqual(["OK", "UNAUTHENTICATED", "99"]);
});
