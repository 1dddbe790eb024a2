/** What we use of the package tr46, which comes without types. */
declare module 'tr46' {
  /** UTS 46 ToASCII; null when the name is refused. */
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
