import { ApplicationFailure, DefaultFailureConverter, TemporalFailure } from '@temporalio/common';
import { errorFacts, framesOf, nameError, plainText } from '../domain/error-facts';

/** The form of the reasons that we give ourselves (`retention_refused`); the SDK names what it wraps after a class. */
const REASON = /^[a-z][a-z_]*$/;
/** What a worker says of a build that lacks an activity: names of ours only, and the first thing to know. */
const NOT_REGISTERED = /^Activity function \w+ is not registered on this Worker/;
const ELSEWHERE = "the worker's log says more";

/**
 * How errors get into histories: by their names, codes and frames. Only failures that we made ourselves, by a reason, and the
 * SDK's own keep their messages. Every failure passes here: of activities, local activities, workflows and their tasks, with
 * all causes.
 */
class NamesOnly extends DefaultFailureConverter {
  override errorToFailure(
    ...[error, payloadConverter, context]: Parameters<DefaultFailureConverter['errorToFailure']>
  ): ReturnType<DefaultFailureConverter['errorToFailure']> {
    // One that comes out of a history is put back as it was.
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

/** By this name the SDK looks for it. */
export const failureConverter = new NamesOnly();
