import { expect, onTestFinished, test } from 'vitest'
import { Databases } from '#database/databases.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { insertMails, MailStore } from '#mail/mail-store.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'
import { AuditStore } from './audit-store.ts'

onEachDatabase('audit within a transaction', (freshUrl) => {
  const clientAt = (url: string) => {
    const { client, release } = new Databases({ clock: systemClock, log: silentLogger }).use(url)
    onTestFinished(release)
    return client
  }

  test('a change and its audit are one commit if they are in one database', async () => {
    const [client, elsewhere] = [clientAt(await freshUrl()), clientAt(await freshUrl())]
    const [audit, mails] = [new AuditStore(client), new MailStore(client)]
    const other = new AuditStore(elsewhere)
    await other.append([auditRow('first')])
    const change = (fails: boolean) =>
      client.transaction(async (tx) => {
        await insertMails(tx, [{ id: 'm', recipient: 'r', subject: 's', text: 't' }], 0)
        const written = [await audit.appendWithin(tx, [auditRow('a')]), await other.appendWithin(tx, [auditRow('a')])]
        if (fails) throw new RangeError('mine')
        return written
      })
    await expect(change(true)).rejects.toThrow(RangeError)
    expect((await audit.list({ limit: 5 })).rows).toEqual([])
    expect(await change(false)).toEqual([true, false])
    expect((await mails.figures()).queued).toBe(1)
    expect(await audit.verify()).toMatchObject({ checked: 1, problems: [] })
    expect((await other.list({ limit: 5 })).rows).toHaveLength(1)
  })
})
