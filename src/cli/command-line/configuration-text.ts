import { join } from 'node:path'
import process from 'node:process'
import { readSmallFileSync } from '#kernel/small-file.ts'

interface Setup {
  readonly config: string
  readonly data: string
  readonly url: string
}

/** A text in the configuration folder for operators, with `#[GATEHOUSE_…]` replaced; undefined if it can't be read. */
export function configurationText(folder: string, name: string, { config, data, url }: Setup): string | undefined {
  let text: string
  try {
    text = readSmallFileSync(join(folder, name)).trimEnd()
  } catch {
    // Absent or unreadable: that must not stop a gateway that listens.
    return undefined
  }
  const values: Readonly<Record<string, string>> = {
    GATEHOUSE_URL: url,
    GATEHOUSE_DATA: data,
    GATEHOUSE_CONFIG: config,
    GATEHOUSE_COMMAND: process.env['GATEHOUSE_COMMAND'] ?? 'gatehouse',
  }
  return text.replace(/#\[(\w+)\]/g, (whole, known: string) => values[known] ?? whole)
}
