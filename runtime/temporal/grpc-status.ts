import { isGrpcServiceError } from '@temporalio/client';

/** The gRPC status that a call to Temporal failed with, if that is what a fault is. */
export function grpcStatus(error: unknown): number | undefined {
  return isGrpcServiceError(error) ? error.code : undefined;
}
