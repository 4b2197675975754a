"""many_products.py COUNT: a function with COUNT products of the same rows, as IR."""
import sys

count = int(sys.argv[1])
print('nn.tensor @t "t" members [] files [0] offsets [0] : tensor<32x16xbf16>')
for i in range(count):
    print(f"nn.stack @stack.s{i} [@t] rows [32] : tensor<32x16xbf16>")
y = "tensor<4x32xbf16>"
print(f"func.func @many(%x: tensor<4x16xbf16>, %live: tensor<1xi32>) -> ({', '.join([y] * count)}) {{")
for i in range(count):
    print(f"  %w{i} = nn.weight @stack.s{i} : tensor<32x16xbf16>")
    print(f'  %y{i} = nn.linear %x, %w{i} live %live : (tensor<4x16xbf16>, tensor<32x16xbf16>, tensor<1xi32>) -> {y} loc("p{i}")')
print(f"  return {', '.join(f'%y{i}' for i in range(count))} : {', '.join([y] * count)}\n}}")
