// Methods whose errors are translated to this protocol's codes.

import type { GrpcMethod } from "../../../../net/grpc/service.ts";
import { grpcErrorOf } from "./status.ts";

export function withMappedErrors(method: GrpcMethod): GrpcMethod {
  const { unary: answer, stream } = method;
  const mapped = (error: unknown) => grpcErrorOf(error) ?? error;
  return {
    ...method,
    ...(answer === undefined
      ? {}
      : {
          async unary(request, call) {
            try {
              return await answer(request, call);
            } catch (error) {
              throw mapped(error);
            }
          },
        }),
    ...(stream === undefined
      ? {}
      : {
          async stream(request, call, sink) {
            try {
              await stream(request, call, sink);
            } catch (error) {
              throw mapped(error);
            }
          },
        }),
  };
}
