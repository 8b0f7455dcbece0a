import { once } from 'node:events'
import { connect } from 'node:net'

/** Sends bytes unchanged and returns everything that comes back before the connection ends. */
export async function rawRequest(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  socket.write(text, 'latin1')
  await once(socket, 'close')
  return answer
}
