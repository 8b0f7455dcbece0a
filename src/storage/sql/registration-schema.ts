import type { StoredInvitationState } from '#storage/registration-store.ts'

/** The tables of registrations. Times are milliseconds since 1970. */
export interface RegistrationSchema {
  reservations: { key: string; owner: string; run: string | null; expires: number }
  pending_registrations: { id: string; form: string; token_hash: string; sealed: string; expires: number }
  invitations: InvitationTable
}

export interface InvitationTable {
  id: string
  form: string
  token_hash: string
  email: string
  attributes: string
  invited_by: string
  state: StoredInvitationState
  created: number
  expires: number
  sent: number
}
