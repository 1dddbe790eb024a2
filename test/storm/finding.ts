/** One invariant of the fault matrix, held against everything that was seen. */
export interface Finding {
  readonly invariant: string;
  /** How many things were compared: a verdict on nothing is none. */
  readonly looked: number;
  readonly seen: string;
  /** Empty when it holds. */
  readonly offenders: readonly string[];
  /** Whether a run may leave it out, because it does not do what this is about. */
  readonly optional?: boolean;
}

/** Those that are broken, and those that looked at nothing although every run has to. */
export const failures = (all: readonly Finding[]): Finding[] =>
  all.filter(({ looked, offenders, optional }) => offenders.length > 0 || (looked === 0 && !optional));

/** A notification with what became of its attempts. */
export interface Row {
  readonly id: string;
  readonly eventId: string;
  readonly partnerId: string;
  /** Null for a test notification. */
  readonly applicationId: string | null;
  readonly sequence: number;
  readonly body: string;
  readonly state: string;
  readonly generation: number;
  readonly attempts: number;
  readonly unknown: number;
  readonly unfinished: number;
  /** When its first attempt was stored, by the database, in milliseconds: what is patient counts from it, arrived or not. */
  readonly firstTriedMs: number;
  /** Why, for each attempt that says of itself that nothing was answered. */
  readonly unanswered: readonly string[];
}

/** Rows by application; test notifications have none. */
export function byApplication(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const { applicationId: id } = row;
    if (id !== null) groups.set(id, [...(groups.get(id) ?? []), row]);
  }
  return groups;
}
