/** The stack cannot start or run, and the message alone tells a person what to do: it is printed without a trace. */
export class StackFailure extends Error {
  override readonly name = 'StackFailure';
}
