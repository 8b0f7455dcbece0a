import { Attributes } from '#identity/attributes.ts'
import type { UserChange } from '#identity/user-directory.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { AuditRow } from '#storage/audit-store.ts'
import { openStorage } from '#storage/open.ts'

/** What the store alone makes of bare inserts: users with their audit, so many at a time, without HTTP, SCIM or workflow. */
export async function storedCreations(dataFolder: string, atOnce: number, seconds: number): Promise<number> {
  const storage = openStorage({ dataFolder, clock: systemClock, log: silentLogger })
  await storage.ready()
  const people = storage.userDirectory({ name: 'people' })
  let count = 0
  const create = async (login: string): Promise<void> => {
    const mail = `${login}@example.com`
    const attributes = Attributes.from({
      userName: [login],
      'name.givenName': ['New'],
      'name.familyName': ['Person'],
      emails: [JSON.stringify({ value: mail, type: 'work', primary: true })],
      'emails.value': [mail],
      active: ['true'],
    })
    const workflow = { id: newId(), name: 'people-sync' }
    const toRow = ({ subject: kind, ...change }: UserChange): AuditRow => ({
      id: newId(),
      time: new Date(),
      requestor: 'idp',
      subject: login,
      workflow,
      target: 'people',
      kind,
      ...change,
    })
    await people.create({ userID: login, groups: [], attributes }, async (transaction, changes) => {
      await storage.audit.appendWithin(transaction, changes.map(toRow))
    })
  }
  const started = performance.now()
  const worker = async (): Promise<void> => {
    while (performance.now() - started < seconds * 1000) await create(`new${count++}`)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  const perSecond = count / ((performance.now() - started) / 1000)
  await people.close()
  await storage.close()
  return perSecond
}
