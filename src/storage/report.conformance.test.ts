import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { reportViews } from '#sdk/report-sql/report-views.ts'
import { readAddress } from '#storage/client/databases.ts'
import { allRows, type ReportStores, reportStoreConformance } from '#storage/conformance/report-store.ts'
import { openStorage, type Storage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'
import { runSql } from '#testing/postgres.ts'

async function storesAt(url: string): Promise<ReportStores> {
  const open = async (): Promise<Storage> => {
    const storage = openStorage({ url, clock: systemClock, log: silentLogger })
    onTestFinished(() => storage.close())
    await storage.ready()
    return storage
  }
  const { dialect, address } = readAddress(url)
  const [one, two] = [await open(), await open()]
  return { one, two, dialect, sql: dialect === 'sqlite' ? inFile(address) : (text) => runSql(url, text) }
}

function inFile(file: string): ReportStores['sql'] {
  const database = new DatabaseSync(file)
  onTestFinished(() => database.close())
  database.exec('pragma busy_timeout = 2000')
  return async (text) => database.prepare(text).all()
}

onEachDatabase('reports', (freshUrl) => {
  reportStoreConformance(async () => storesAt(await freshUrl()))

  test('the views are those that statements are checked against, column by column', async () => {
    const { one, dialect, sql } = await storesAt(await freshUrl())
    const made = await sql(
      dialect === 'sqlite'
        ? "select name from sqlite_schema where type = 'view' order by name"
        : 'select table_name as name from information_schema.views where table_schema = current_schema() order by 1',
    )
    const names = made.map(({ name }) => String(name)).filter((name) => name.startsWith('report_'))
    expect(names).toEqual(Object.keys(reportViews).sort())
    for (const [view, columns] of Object.entries(reportViews)) {
      expect({ view, columns: (await allRows(one.reports, [`select * from ${view}`])).columns }).toEqual({
        view,
        columns,
      })
    }
  })
})
