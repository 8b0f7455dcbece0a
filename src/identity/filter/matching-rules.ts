/** The matching rules (RFC 4517) by which a filter's text says that letter case counts. */
export const caseExactMatch = 'caseExactMatch'
export const caseExactSubstringsMatch = 'caseExactSubstringsMatch'

const names = new Map([
  ['caseexactmatch', caseExactMatch],
  ['2.5.13.5', caseExactMatch],
  ['caseexactsubstringsmatch', caseExactSubstringsMatch],
  ['2.5.13.7', caseExactSubstringsMatch],
])

/** The rule by its name or OID; undefined for one that Gatehouse cannot apply. */
export const matchingRule = (nameOrOid: string): string | undefined => names.get(nameOrOid.toLowerCase())
