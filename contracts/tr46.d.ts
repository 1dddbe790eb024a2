declare module 'tr46' {
  export function toASCII(domainName: string, options: Readonly<Record<string, boolean>>): string | null;
}
