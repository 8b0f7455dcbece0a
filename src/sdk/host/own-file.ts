import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'

/** The gateway's own folder. */
export interface OwnPlaces {
  readonly dataFolder: string
  /** The file of an embedded database outside of the data folder. */
  readonly databaseFile?: string | undefined
}

/**
 * The gateway's own file or folder that a path leads to, also through symbolic links; undefined if it leads
 * elsewhere. Relative paths start at the data folder. Names that begin with the database's belong to SQLite and to
 * the instance lock.
 */
export function ownFile(path: string, { dataFolder, databaseFile }: OwnPlaces): string | undefined {
  const file = realPath(resolve(dataFolder, path))
  const folder = realPath(resolve(dataFolder))
  const keys = realPath(join(folder, 'keys'))
  if (file === folder) return folder
  if (file === keys || file.startsWith(keys + sep)) return keys
  const databases = [join(folder, 'gatehouse.db'), ...(databaseFile === undefined ? [] : [resolve(databaseFile)])]
  // SQLite derives the names of the files beside a database from the name with which it was opened.
  return databases.flatMap((name) => [name, realPath(name)]).find((name) => file.startsWith(name))
}

const mostLinks = 40

/** The path without symbolic links, even of a file that does not exist yet. */
function realPath(path: string, links = 0): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    if (parent === path) return path
    const place = join(realPath(parent, links), basename(path))
    const target = links < mostLinks ? linkTarget(place) : undefined
    return target === undefined ? place : realPath(resolve(dirname(place), target), links + 1)
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined
  } catch {
    return undefined
  }
}
