// Errors of the services as gRPC statuses, with the machine-readable details of the reference.

import { idOfUuid, uuidOf } from "../../../core/ids.ts";
import { BadRequest, detailOf, ErrorInfo, GrpcCode, GrpcError } from "../../../net/grpc/status.ts";

const domain = "stepflow.io";

/** A wrong field of the request, by its name on the wire. */
export function invalid(field: string, description: string): GrpcError {
  const detail = detailOf(BadRequest, { fieldViolations: [{ field, description }] });
  return new GrpcError(GrpcCode.INVALID_ARGUMENT, `${field} ${description}`, [detail]);
}

/** Proto3 accepts any number for an enum; an unknown one is refused by name. */
export function enumIn(field: string, value: number, values: { readonly [name: string]: number }): number {
  if (Object.values(values).includes(value)) return value;
  const known = Object.entries(values).map(([name, number]) => `${number} (${name})`);
  throw invalid(field, `is ${value}, expected one of ${known.join(", ")}`);
}

/** `type` is the kind of the missing thing: `queue`, `task`, `run`, `flow`, `blob`. */
export function notFound(type: string, id: string): GrpcError {
  const detail = detailOf(ErrorInfo, { reason: "RESOURCE_NOT_FOUND", domain, metadata: { resource_type: type, resource_id: id } });
  return new GrpcError(GrpcCode.NOT_FOUND, `${type} '${id}' not found`, [detail]);
}

/** The request is valid but not possible in the current state. `reason` is for machines, in capitals. */
export function precondition(reason: string, message: string, metadata: { readonly [name: string]: string } = {}): GrpcError {
  return new GrpcError(GrpcCode.FAILED_PRECONDITION, message, [detailOf(ErrorInfo, { reason, domain, metadata })]);
}

/** The caller's token does not allow it. */
export function denied(message: string): GrpcError {
  return new GrpcError(GrpcCode.PERMISSION_DENIED, message);
}

/** Our id of the run that a field names, in either form. */
export function runIdIn(field: string, text: string): string {
  const id = uuidOf(text) === undefined ? idOfUuid(text) : text;
  if (id === undefined) throw invalid(field, `is ${JSON.stringify(text.slice(0, 80))}, expected a UUID`);
  return id;
}

/** The request is not possible now. A later retry may succeed. */
export function unavailable(message: string): GrpcError {
  return new GrpcError(GrpcCode.UNAVAILABLE, message);
}
