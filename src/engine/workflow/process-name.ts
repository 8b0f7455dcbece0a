import { hostname } from 'node:os'
import process from 'node:process'
import { newId } from '#kernel/ids.ts'

/** Tells one worker from all others, for people too: host, process and a part of its own. */
export const processName = (): string => `${hostname()}:${process.pid}:${newId().slice(-8)}`
