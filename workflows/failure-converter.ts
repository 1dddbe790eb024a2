import { ApplicationFailure, DefaultFailureConverter, TemporalFailure } from '@temporalio/common';
import { errorFacts, framesOf, nameError, plainText } from '../domain/error-facts';

// The form of our own reasons (`retention_refused`). The SDK gives a wrapped error the name of its class.
const REASON = /^[a-z][a-z_]*$/;
// The message of a worker without an activity. It contains our names only, and operators need it.
const NOT_REGISTERED = /^Activity function \w+ is not registered on this Worker/;
const ELSEWHERE = "the worker's log says more";

// Writes errors into histories by name, code and frames. Only our own reasons and the SDK's keep
// messages.
class NamesOnly extends DefaultFailureConverter {
  override errorToFailure(
    ...[error, payloadConverter, context]: Parameters<DefaultFailureConverter['errorToFailure']>
  ): ReturnType<DefaultFailureConverter['errorToFailure']> {
    // A failure that was read from a history is written as it was.
    if (error instanceof TemporalFailure && error.failure) return error.failure;
    const failure = super.errorToFailure(error, payloadConverter, context);
    const stackTrace = framesOf({ message: failure.message, stack: failure.stackTrace });
    if (!(error instanceof TemporalFailure))
      return { ...failure, stackTrace, message: `${nameError(errorFacts(error))}: ${ELSEWHERE}` };
    if (!(error instanceof ApplicationFailure) || REASON.test(error.type ?? ''))
      return { ...failure, stackTrace, message: plainText(error.message) };
    const type = nameError(errorFacts({ name: error.type, constructor: Error }));
    const known = NOT_REGISTERED.exec(error.message)?.[0];
    return {
      ...failure,
      stackTrace,
      message: `${type}: ${known ?? ELSEWHERE}`,
      applicationFailureInfo: { ...failure.applicationFailureInfo, type, details: undefined },
    };
  }
}

/** The SDK looks for this name. */
export const failureConverter = new NamesOnly();
