/** The clients whose habits a gateway can follow; `tolerant` works with all. */
export const clientNames = [
  'tolerant',
  'entra',
  'okta',
  'sailpoint',
  'onelogin',
  'jumpcloud',
  'google',
  'aws',
  'github',
  'slack',
  'strict',
] as const
export type ClientName = (typeof clientNames)[number]
