// A small shop that renders its pages on the server, with nothing but Node's standard library.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const prices = new Map([["lamp", 40], ["chair", 120]]);

const html = (title, text) => `<!doctype html>
<title>${title}</title>
<h1>${title}</h1>
<p>${text}</p>
<nav><a href="/">shop</a> <a href="/products/lamp">lamp</a> <a href="/products/chair">chair</a> \
<a href="/account">account</a></nav>
`;

async function answer(request, response) {
  const { pathname } = new URL(request.url, "http://site");
  const now = new Date().toISOString().slice(11, 19);
  const send = (status, headers, body) =>
    response.writeHead(status, { "content-type": "text/html; charset=utf-8", ...headers }).end(body);

  if (pathname === "/") return send(200, {}, html("Shop", `${prices.size} products`));
  if (pathname === "/account") {
    // Of this visitor alone: an answer that sets a cookie is never stored.
    const visitor = randomUUID().slice(0, 8);
    return send(200, { "set-cookie": `visitor=${visitor}; HttpOnly` }, html("Account", `visitor ${visitor}`));
  }
  const name = pathname.match(/^\/products\/([a-z]+)$/)?.[1];
  if (!prices.has(name)) return send(404, {}, html("Not found", "no such page"));
  if (request.method === "POST") {
    prices.set(name, prices.get(name) - 1);
    return send(200, {}, html(name, `the price of the ${name} is ${prices.get(name)} now`));
  }
  await sleep(500); // three services and a database
  const text = `the ${name} costs ${prices.get(name)}, rendered at ${now}`;
  return send(200, { "cache-tag": `products, product-${name}` }, html(name, text));
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => response.writeHead(500).end(String(error)));
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
process.on("SIGTERM", () => {
  server.close(() => process.exit(0));
  server.closeAllConnections();
});
