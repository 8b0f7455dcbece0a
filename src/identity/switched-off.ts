import type { AttributeSource } from '#identity/attributes.ts'

/** Of `userAccountControl`, as Active Directory has it. */
const accountDisabled = 2
/** By an administrator; any other time is that of wrong passwords, by which nobody is to lose a session. */
const lockedForGood = '000001010000z'

const signs: readonly (readonly [attribute: string, isOff: (value: string) => boolean])[] = [
  ['active', (value) => value.toLowerCase() === 'false'],
  ['nsAccountLock', (value) => value.toLowerCase() === 'true'],
  ['loginDisabled', (value) => value.toLowerCase() === 'true'],
  ['pwdAccountLockedTime', (value) => value.toLowerCase() === lockedForGood],
  ['userAccountControl', (value) => /^\d{1,10}$/.test(value) && (Number(value) & accountDisabled) !== 0],
]

/**
 * Whether an entry says of itself that its person may not log in: SCIM's `active`, or what directory servers have for it.
 * An entry that says nothing of the kind is not switched off.
 */
export const isSwitchedOff = (attributes: AttributeSource): boolean =>
  signs.some(([attribute, isOff]) => attributes.values(attribute).some((value) => isOff(value.trim())))
