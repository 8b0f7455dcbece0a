/** The matching rules (RFC 4517) by which a filter's text says whether letter case counts. */
export const caseExactMatch = 'caseExactMatch'
export const caseExactSubstringsMatch = 'caseExactSubstringsMatch'
export const caseIgnoreMatch = 'caseIgnoreMatch'
export const caseIgnoreSubstringsMatch = 'caseIgnoreSubstringsMatch'

const names = new Map([
  ['caseexactmatch', caseExactMatch],
  ['2.5.13.5', caseExactMatch],
  ['caseexactsubstringsmatch', caseExactSubstringsMatch],
  ['2.5.13.7', caseExactSubstringsMatch],
  ['caseignorematch', caseIgnoreMatch],
  ['2.5.13.2', caseIgnoreMatch],
  ['caseignoresubstringsmatch', caseIgnoreSubstringsMatch],
  ['2.5.13.4', caseIgnoreSubstringsMatch],
])

/** The rule by its name or OID; undefined for one that Gatehouse cannot apply. */
export const matchingRule = (nameOrOid: string): string | undefined => names.get(nameOrOid.toLowerCase())
