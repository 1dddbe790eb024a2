/** Lines per second and kind of refusal: enough to see what it is. */
const LINES_PER_SECOND = 10;
const SECOND_MS = 1_000;

/** What refusals of one kind have in common. */
export interface RefusalKind {
  readonly route: string;
  readonly status: number;
  /** Of the key that is refused for having used its limit; undefined: no valid key. */
  readonly keyId: string | undefined;
}

export interface RefusalSample {
  /** Whether this refusal is logged by itself; else it is counted. */
  admit(kind: RefusalKind): boolean;
  /** Reports what was left out so far. */
  flush(): void;
}

/**
 * Keeps a flood of refused calls from flooding the log. What is left out is reported once a second, with its number.
 * @param report called for each kind of which lines were left out.
 */
export function createRefusalSample(report: (kind: RefusalKind, leftOut: number) => void): RefusalSample {
  const seen = new Map<string, { readonly kind: RefusalKind; count: number }>();
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const { kind, count } of seen.values())
      if (count > LINES_PER_SECOND) report(kind, count - LINES_PER_SECOND);
    seen.clear();
  }
  return {
    admit(kind) {
      timer ??= setTimeout(flush, SECOND_MS).unref();
      const name = `${kind.status} ${kind.route} ${kind.keyId}`;
      const known = seen.get(name) ?? { kind, count: 0 };
      seen.set(name, known);
      known.count += 1;
      return known.count <= LINES_PER_SECOND;
    },
    flush,
  };
}
