import type { GrantAccess, TimedGrant } from '#sdk/grants.ts'
import type { Grant, GrantStore } from '#storage/grant-store.ts'

export const createGrantAccess = (store: Pick<GrantStore, 'listOfSubject' | 'extend'>): GrantAccess => ({
  ofSubject: async (login) => (await store.listOfSubject(login)).map(shown),
  extend: async (id, until) => {
    const grant = await store.extend(id, until)
    return grant && shown(grant)
  },
})

const shown = ({ id, target, subject, kind, name, granted, expires }: Grant): TimedGrant => ({
  id,
  target,
  subject,
  kind,
  name,
  granted,
  expires,
})
