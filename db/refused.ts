/** A change that cannot be made as asked. Thrown, so that the transaction around it rolls back. */
export class Refused extends Error {
  override readonly name = 'Refused';

  constructor(
    /** `not_found`: the thing does not exist; `conflict`: its state forbids the change; `invalid`: the request is wrong. */
    readonly reason: 'not_found' | 'conflict' | 'invalid',
    message: string,
  ) {
    super(message);
  }
}
