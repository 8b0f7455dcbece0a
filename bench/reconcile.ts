import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { insertPeople } from '#testing/databases/many-people.ts'

/** What `reconcile-process.ts` prints. */
export interface ComparisonFigures {
  readonly seconds: number
  readonly cpuSeconds: number
  /** Its own memory, without the pages of database files that the system can drop. */
  readonly peakMegabytes: number
  /** Pages of both systems, their counts, and batches of links. */
  readonly reads: number
  readonly rows: number
  readonly agree: number
}

interface ReconcileFigures extends ComparisonFigures {
  /** `a second directory` is read side by side with the first, `tables` by way of a file. */
  readonly target: 'a second directory' | 'tables'
}

/** One of so many people is missing, one changed and one extra. */
const oneOf = 100
const run = promisify(execFile)

/**
 * Compares a directory of our own database with a second one, and with the tables of an application: first with equal ones,
 * then with differences of each kind. Each comparison is a process of its own, so that its memory is nothing else. Throws if it finds another number.
 */
export async function measureReconcile(folder: string, size: number): Promise<readonly ReconcileFigures[]> {
  const dataFolder = join(folder, `reconcile-${size}`)
  mkdirSync(dataFolder, { mode: 0o700 })
  await insertPeople({ dataFolder }, size)
  const application = join(dataFolder, 'application.db')
  fillApplication(application, size)
  const figures: ReconcileFigures[] = []
  // Those that limit the memory of a gateway.
  const flags = readFileSync('bin/gatehouse', 'utf8').match(/--[a-z-]+=\d+/g) ?? []
  for (const [target, differs] of [
    ['a second directory', false],
    ['tables', false],
    ['tables', true],
  ] as const) {
    if (differs) changeApplication(application, size)
    const file = target === 'tables' ? application : ''
    const { stdout } = await run('bin/node', [...flags, 'bench/reconcile-process.ts', dataFolder, file])
    const found = JSON.parse(stdout) as ComparisonFigures
    const each = differs ? Math.ceil(size / oneOf) : 0
    if (found.rows !== 3 * each || found.agree !== size - 2 * each) {
      throw new Error(`${found.rows} differences and ${found.agree} people who agree, of ${size}`)
    }
    figures.push({ ...found, target })
  }
  return figures
}

function fillApplication(file: string, size: number): void {
  const database = new DatabaseSync(file)
  database.exec(`pragma journal_mode = wal; create table people (id integer primary key, login text not null unique, mail text);
    with recursive series(i) as (select 0 union all select i + 1 from series where i + 1 < ${size})
    insert into people (login, mail) select login, login || '@x.org' from (select 'user' || substr(cast(10000000 + i as text), 2) as login from series)`)
  database.close()
}

/** The application has them in the order of their numbers. */
function changeApplication(file: string, size: number): void {
  const database = new DatabaseSync(file)
  database.exec(`begin; update people set mail = 'old@x.org' where id % ${oneOf} = 1;
    update people set login = 'extra' || id, mail = null where id % ${oneOf} = 2 and id <= ${size}; commit`)
  const [count] = database.prepare(`select count(*) as n from people where id % ${oneOf} = 2`).all()
  database.close()
  if (count?.['n'] !== Math.ceil(size / oneOf)) throw new Error(`the size must be a multiple of ${oneOf}`)
}
