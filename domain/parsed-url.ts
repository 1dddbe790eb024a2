/**
 * A text as a URL; undefined when it is none. Never `URL.canParse`: once Node 20.20 has optimised a caller, that takes Latin-1 for UTF-8, so that
 * it refuses `https://bücher.example/` and takes hosts that the constructor refuses.
 */
export function parsedUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
