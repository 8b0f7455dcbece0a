import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { zstdDecompressSync } from 'node:zlib'

export interface RpmFile {
  readonly path: string
  readonly mode: number
  readonly owner: string
  readonly group: string
  /** Where a link leads; empty for others. */
  readonly link: string
  /** SHA-256 as the header has it; empty for folders and links. */
  readonly digest: string
}

export interface Rpm {
  readonly name: string
  readonly version: string
  readonly architecture: string
  readonly requires: readonly string[]
  readonly scripts: readonly string[]
  readonly files: readonly RpmFile[]
  /** SHA-256 of the content of each file in the payload, by path. */
  readonly payload: ReadonlyMap<string, string>
}

const magic = Buffer.from([0x8e, 0xad, 0xe8, 0x01])
const leadBytes = 96

/** Reads a package as rpm does: lead, signatures, header, and an archive of files. Throws if a part is not in place. */
export function readRpm(file: string): Rpm {
  const content = readFileSync(file)
  if (content.readUInt32BE(0) !== 0xedabeedb) throw new Error(`${file} is no RPM`)
  const signatures = readHeader(content, leadBytes)
  const header = readHeader(content, Math.ceil(signatures.end / 8) * 8)
  const texts = (tag: number): string[] => header.texts(tag)
  const numbers = (tag: number): number[] => header.numbers(tag)
  const folders = texts(1118)
  const places = numbers(1116)
  const [modes, owners, groups, links, digests] = [numbers(1030), texts(1039), texts(1040), texts(1036), texts(1035)]
  const files = texts(1117).map((name, at) => ({
    path: `${folders[places[at] ?? 0]}${name}`,
    mode: modes[at] ?? 0,
    owner: owners[at] ?? '',
    group: groups[at] ?? '',
    link: links[at] ?? '',
    digest: digests[at] ?? '',
  }))
  return {
    name: texts(1000).join(),
    version: `${texts(1001)}-${texts(1002)}`,
    architecture: texts(1022).join(),
    requires: texts(1049).filter((name) => !name.startsWith('rpmlib(')),
    scripts: [1023, 1024, 1025].flatMap(texts),
    files,
    payload: readArchive(zstdDecompressSync(content.subarray(header.end))),
  }
}

/** Entries of 16 bytes (tag, type, offset, count) and the values that they lead to. */
function readHeader(content: Buffer, at: number) {
  if (!content.subarray(at, at + 4).equals(magic)) throw new Error(`no header at ${at}`)
  const [count, bytes] = [content.readUInt32BE(at + 8), content.readUInt32BE(at + 12)]
  const data = at + 16 + 16 * count
  const entries = new Map<number, { type: number; start: number; count: number }>()
  for (let entry = at + 16; entry < data; entry += 16) {
    const [tag, type] = [content.readUInt32BE(entry), content.readUInt32BE(entry + 4)]
    entries.set(tag, { type, start: data + content.readUInt32BE(entry + 8), count: content.readUInt32BE(entry + 12) })
  }
  return {
    end: data + bytes,
    texts(tag: number): string[] {
      const { start, count: many } = entries.get(tag) ?? { start: 0, count: 0 }
      let from = start
      return Array.from({ length: many }, () => {
        const end = content.indexOf(0, from)
        const text = content.toString('utf8', from, end)
        from = end + 1
        return text
      })
    },
    numbers(tag: number): number[] {
      const { type, start, count: many } = entries.get(tag) ?? { type: 4, start: 0, count: 0 }
      // 3 is a number of 16 bits, 4 one of 32.
      return Array.from({ length: many }, (_, i) =>
        type === 3 ? content.readUInt16BE(start + 2 * i) : content.readUInt32BE(start + 4 * i),
      )
    },
  }
}

/** An archive of cpio, in the form "newc". */
function readArchive(content: Buffer): Map<string, string> {
  const found = new Map<string, string>()
  const aligned = (at: number): number => Math.ceil(at / 4) * 4
  for (let at = 0; ; ) {
    if (content.toString('latin1', at, at + 6) !== '070701') throw new Error(`no entry of an archive at ${at}`)
    const field = (index: number): number =>
      Number.parseInt(content.toString('latin1', at + 6 + 8 * index, at + 14 + 8 * index), 16)
    const [mode, size, nameSize] = [field(1), field(6), field(11)]
    const name = content.toString('utf8', at + 110, at + 110 + nameSize - 1)
    if (name === 'TRAILER!!!') return found
    const start = aligned(at + 110 + nameSize)
    const isFile = (mode & 0o170000) === 0o100000
    if (isFile) found.set(name.replace(/^\.?\/?/, '/'), hash(content.subarray(start, start + size)))
    at = aligned(start + size)
  }
}

const hash = (content: Buffer): string => createHash('sha256').update(content).digest('hex')
