// Wraps methods so that their errors become this protocol's codes.

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
          // Not async: an async function would keep the request in memory while it waits.
          unary(request, call) {
            try {
              const answered = answer(request, call);
              if (!(answered instanceof Promise)) return answered;
              return answered.catch((error: unknown) => {
                throw mapped(error);
              });
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
