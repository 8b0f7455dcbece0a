import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { placeBuild } from './place-build.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))

function hasVite(): boolean {
  try {
    createRequire(import.meta.url).resolve('react-dom')
    createRequire(import.meta.url).resolve('vite')
    return true
  } catch {
    return false
  }
}

/** Builds the portal in memory, then writes it to a folder. Returns the files that it was made of. */
export async function buildPortal(target: string): Promise<readonly string[]> {
  const vite = await import('vite')
  const built = await vite.build({ configFile: `${folder}vite.config.ts`, logLevel: 'error', build: { write: false } })
  if (!('output' in built)) throw new Error('there is more than one build')
  const files = built.output.map((file) => ({
    name: file.fileName,
    content: Buffer.from(file.type === 'chunk' ? file.code : file.source),
  }))
  await placeBuild(target, files)
  return built.output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
}

// By `npm ci`.
if (import.meta.main && hasVite()) {
  await buildPortal(`${folder}dist`)
} else if (import.meta.main && !existsSync(`${folder}dist/index.html`)) {
  console.log(
    'The portal was not built, since development dependencies are left out; everything else works without it.',
  )
}
