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
          // Not async: while it waits it would hold the request.
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
