import type { SessionAccess } from '#sdk/auth/session.ts'

/** No user is logged in. */
export const noSessions: SessionAccess = {
  ofUser: async () => [],
  end: async () => false,
  endAll: async () => 0,
  endByOperator: async () => 0,
  endMarked: async () => 0,
  minutesLeft: async () => undefined,
}
