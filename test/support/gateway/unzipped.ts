import { inflateRawSync } from 'node:zlib'

const centralEntry = 0x02014b50
const deflated = 8

/** The files of an archive, as texts by name. */
export function unzipped(archive: Buffer): Map<string, string> {
  const files = new Map<string, string>()
  for (let at = archive.indexOf('PK\x01\x02', 0, 'latin1'); archive.readUInt32LE(at) === centralEntry; ) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => archive.readUInt16LE(at + offset))
    const name = archive.toString('utf8', at + 46, at + 46 + (nameLength ?? 0))
    const local = archive.readUInt32LE(at + 42)
    const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
    const bytes = archive.subarray(start, start + archive.readUInt32LE(at + 20))
    const isDeflated = archive.readUInt16LE(at + 10) === deflated
    files.set(name, (isDeflated ? inflateRawSync(bytes) : bytes).toString('utf8'))
    at += 46 + (nameLength ?? 0) + (extraLength ?? 0) + (commentLength ?? 0)
  }
  return files
}
