declare module 'tr46' {
  export function toASCII(
    domainName: string,
    options: {
      readonly checkHyphens: boolean;
      readonly checkBidi: boolean;
      readonly checkJoiners: boolean;
      readonly useSTD3ASCIIRules: boolean;
      readonly verifyDNSLength: boolean;
    },
  ): string | null;
}
