const SIGNS = /ENOSPC|EDQUOT|EFBIG|no space left on device|disk quota exceeded|database or disk is full/i;
/** SQLSTATE disk_full. */
const DISK_FULL = '53100';

/** What to do when an error, or what it came from, says that a disk is full; undefined when none does. */
export function diskFullAdvice(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const sign = SIGNS.exec(at.message)?.[0];
    if (sign !== undefined || (at as { code?: unknown }).code === DISK_FULL)
      return 'The disk is full. Make room (the folder DATA_DIR names and the one for temporary files need it), then start again.';
  }
  return undefined;
}
